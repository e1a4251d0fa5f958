/* Static charts become interactive when they come into view. The library is loaded once, from this
   site, and only where there is a chart to show. */
(function () {
  "use strict";

  var folder = document.currentScript.src.replace(/[^/]*$/, "");
  var MARGIN = "200px";
  var NARROW = 480;
  var PAIRED = 600;
  /* Width left of a legend's labels: the axis of most charts, and the symbols. */
  var BESIDE = 100;

  /* Fit a chart to the page's width: narrow legends have one column, and labels on a phone are
     smaller. */
  function fitted(spec, width) {
    spec.width = width;
    if (width < PAIRED) {
      spec.config.legend = Object.assign({}, spec.config.legend, { columns: 1, labelLimit: width - BESIDE });
    }
    if (width < NARROW) {
      spec.config.axisY = { labelFontSize: 10, labelLimit: Math.round(width * 0.5) };
    }
    return spec;
  }

  /* Expressions are interpreted ("ast"), because the pages' policy forbids running text as code. */
  var OPTIONS = { renderer: "svg", actions: false, ast: true };

  var views = new WeakMap();

  /* The interactive chart of a place, drawn on first use. */
  function view(plot) {
    if (!views.has(plot)) { views.set(plot, specOf(plot).then(function (spec) { return draw(plot, spec); })); }
    return views.get(plot);
  }

  /* Draw another chart in the same place, after a chart that is still being drawn. */
  function show(plot, spec) {
    var before = Promise.resolve(views.get(plot)).catch(function () {});
    views.set(plot, before.then(function () { return draw(plot, structuredClone(spec)); }));
    return views.get(plot);
  }

  /* The spec next to the picture, or in the figure's script. */
  async function specOf(plot) {
    var beside = plot.querySelector("template"), name = plot.dataset.ecFigure || plot.dataset.ecLater;
    if (beside) { return JSON.parse(beside.content.textContent); }
    await window.epochcostShown.loaded(folder + "../data/figures/" + name + ".js", "epochcostSpecs");
    return structuredClone(window.epochcostSpecs[name]);
  }

  async function draw(plot, spec) {
    var stage = window.epochcostShown.element("div", "", { className: "ec-live" }), width = plot.clientWidth;
    var embed = await window.epochcostShown.loaded(folder + "vega.js", "vegaEmbed");
    var made = await embed(stage, fitted(spec, width), OPTIONS);
    plot.replaceChildren(stage);
    plot.dataset.state = "interactive";
    follow(plot, made.view, width);
    return made.view;
  }

  /* Keep the chart as wide as its place. */
  function follow(plot, view, first) {
    var last = first;
    new ResizeObserver(function () {
      var width = plot.clientWidth;
      if (!plot.isConnected || width === 0 || width === last) { return; }
      last = width;
      view.width(width).runAsync();
    }).observe(plot);
  }

  function start() {
    var seen = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (!entry.isIntersecting) { return; }
        seen.unobserve(entry.target);
        view(entry.target).catch(function (error) {
          entry.target.dataset.state = "still";
          console.error("epochcost: the chart stays static:", error);
        });
      });
    }, { rootMargin: MARGIN });
    document.querySelectorAll(".ec-plot:not([data-state])").forEach(function (plot) {
      if (!plot.querySelector(".ec-static") && !plot.dataset.ecLater) { return; }
      plot.dataset.state = "static";
      seen.observe(plot);
    });
  }

  window.epochcostCharts = { show: show, view: view };

  /* Material's observable emits at every page of instant navigation. */
  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
