/* The home page for other models and jobs. Everything was computed when the site was built; the
   address stores the choice. */
(function () {
  "use strict";

  var root = document.currentScript.src.replace(/assets\/[^/]*$/, "");

  function fill(place, texts) {
    Object.keys(texts).forEach(function (name) {
      var part = place.querySelector("[data-ec=" + name + "]");
      if (part) { part.textContent = texts[name]; }
    });
  }

  async function show(form, data) {
    var model = form.model.value, found;
    Array.from(form.job.options).forEach(function (one) {
      one.hidden = one.disabled = !data[model + "/" + one.value];
    });
    if (form.job.selectedOptions[0].disabled) {
      form.job.value = Array.from(form.job.options).find(function (one) { return !one.disabled; }).value;
    }
    found = data[model + "/" + form.job.value];
    var place = document.querySelector(".ec-cards"), first = place.firstElementChild;
    place.replaceChildren.apply(place, found.cards.map(function (texts) {
      var card = first.cloneNode(true);
      fill(card, texts);
      card.querySelector("a").href = root + texts.page;
      return card;
    }));
    place.style.setProperty("--ec-cards", found.cards.length);
    document.querySelector("[data-ec-about] small").textContent = found.about;
    form.querySelector("[data-ec-own]").href = root + found.own;
    history.replaceState(null, "", "?model=" + model + "&job=" + form.job.value + location.hash);
    await chart(found);
  }

  async function chart(found) {
    var figure = document.querySelector(".ec-home");
    if (!figure) { return; }
    figure.hidden = !found.figure;
    if (!found.figure) { return; }
    await window.epochcostShown.loaded(root + "data/figures/" + found.figure + ".js", "epochcostSpecs");
    fill(figure, { title: found.title + ".", source: found.source });
    figure.querySelector("[data-ec=page]").href = root + found.page;
    await window.epochcostCharts.show(figure.querySelector(".ec-plot"), window.epochcostSpecs[found.figure]);
  }

  async function start() {
    var form = document.querySelector("[data-ec-home]");
    if (!form || form.dataset.state) { return; }
    form.dataset.state = "ready";
    var asked = new URLSearchParams(location.search);
    var data = await window.epochcostShown.loaded(root + form.dataset.ecHome, "epochcostHome");
    form.addEventListener("change", function () { show(form, data).catch(console.error); });
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    if (!asked.has("model")) { return; }
    form.model.value = asked.get("model");
    if (data[form.model.value + "/" + asked.get("job")]) { form.job.value = asked.get("job"); }
    if (form.model.value) { await show(form, data); }
  }

  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
