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
      one.disabled = !data[model + "/" + one.value];
    });
    if (form.job.selectedOptions[0].disabled) {
      form.job.value = Array.from(form.job.options).find(function (one) { return !one.disabled; }).value;
    }
    found = data[model + "/" + form.job.value];
    Object.keys(found.cards).forEach(function (name) {
      var card = document.querySelector("[data-ec-card=" + name + "]");
      fill(card, found.cards[name]);
      card.querySelector("a").href = root + found.cards[name].page;
    });
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
    fill(figure, { title: found.title + "." });
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
    if (data[asked.get("model") + "/" + asked.get("job")]) {
      form.model.value = asked.get("model");
      form.job.value = asked.get("job");
      await show(form, data);
    }
  }

  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
