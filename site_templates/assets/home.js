/* The home page for other models and jobs. Everything was computed when the site was built; the
   address stores the choice. */
(() => {
  "use strict";

  const root = document.currentScript.src.replace(/assets\/[^/]*$/, ""), { loaded, onPage } = window.epochcostShown;

  function fill(place, texts) {
    Object.entries(texts).forEach(([name, text]) => {
      const part = place.querySelector(`[data-ec=${name}]`);
      if (part) { part.textContent = text; }
    });
  }

  /* ``fresh`` is true for a newly chosen model, which opens on its main job. */
  async function show(form, data, fresh) {
    const { model, job } = form, main = Array.from(job.options).find(({ value }) => data[`${model.value}/${value}`]?.main);
    if (fresh && main) { job.value = main.value; }
    window.epochcostForms.offer(job, name => data[`${model.value}/${name}`]);
    const answer = data[`${model.value}/${job.value}`], place = document.querySelector(".ec-cards");
    place.replaceChildren(...answer.cards.map(texts => {
      const card = place.firstElementChild.cloneNode(true);
      fill(card, texts);
      card.querySelector("a").href = root + texts.page;
      return card;
    }));
    place.style.setProperty("--ec-cards", answer.cards.length);
    document.querySelector("[data-ec-about] small").textContent = answer.about;
    Array.from(job.options).forEach(option => {
      option.textContent = data[`${model.value}/${option.value}`]?.job || option.textContent;
    });
    form.querySelector("[data-ec-own]").href = root + answer.own;
    history.replaceState(null, "", `?model=${model.value}&job=${job.value}${location.hash}`);
    await chart(answer);
  }

  async function chart(answer) {
    const figure = document.querySelector(".ec-home");
    if (figure) { figure.hidden = !answer.figure; }
    if (!figure || !answer.figure) { return; }
    const specs = await loaded(`${root}data/figures/${answer.figure}.js`, "epochcostSpecs");
    fill(figure, { title: `${answer.title}.`, source: answer.source });
    figure.querySelector("[data-ec=page]").href = root + answer.page;
    await window.epochcostCharts.show(figure.querySelector(".ec-plot"), specs[answer.figure]);
  }

  onPage(async () => {
    const form = document.querySelector("[data-ec-home]:not([data-state])");
    if (!form) { return; }
    form.dataset.state = "ready";
    const asked = new URLSearchParams(location.search);
    const data = await loaded(root + form.dataset.ecHome, "epochcostHome");
    form.addEventListener("change", ({ target }) => show(form, data, target === form.model).catch(console.error));
    form.addEventListener("submit", event => event.preventDefault());
    const named = Array.from(form.model.options).find(({ value }) => value === asked.get("model"));
    if (!named) { return; }
    named.selected = true;
    if (data[`${named.value}/${asked.get("job")}`]) { form.job.value = asked.get("job"); }
    await show(form, data, !asked.has("job"));
  });
})();
