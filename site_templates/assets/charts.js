/* Static charts become interactive when they come into view. The library is loaded once, from this
   site, and only where there is a chart to show. */
(() => {
  "use strict";

  const folder = document.currentScript.src.replace(/[^/]*$/, ""), { element, loaded, onPage } = window.epochcostShown;
  const MARGIN = "200px", NARROW = 480, PAIRED = 600;
  // Width left of a legend's labels: the axis of most charts, and the symbols.
  const BESIDE = 100;
  // Expressions are interpreted ("ast"), because the pages' policy forbids running text as code.
  const OPTIONS = { renderer: "svg", actions: false, ast: true };

  /* Fit a chart to the page's width: narrow legends have one column, and labels on a phone are
     smaller. */
  function fitted(spec, width) {
    spec.width = width;
    if (width < PAIRED) { spec.config.legend = { ...spec.config.legend, columns: 1, labelLimit: width - BESIDE }; }
    if (width < NARROW) { spec.config.axisY = { labelFontSize: 10, labelLimit: Math.round(width * 0.5) }; }
    return spec;
  }

  const views = new WeakMap();

  /* The interactive chart of a place, drawn on first use. */
  function view(plot) {
    if (!views.has(plot)) { views.set(plot, specOf(plot).then(spec => draw(plot, spec))); }
    return views.get(plot);
  }

  /* Draw another chart in the same place, after a chart that is still being drawn. */
  function show(plot, spec) {
    const before = Promise.resolve(views.get(plot)).catch(() => {});
    views.set(plot, before.then(() => {
      plot.querySelector(".ec-static")?.remove(); // the former chart, which paper would show
      return draw(plot, structuredClone(spec));
    }));
    return views.get(plot);
  }

  async function specOf(plot) {
    const name = plot.dataset.ecFigure || plot.dataset.ecLater;
    return structuredClone((await loaded(`${folder}../data/figures/${name}.js`, "epochcostSpecs"))[name]);
  }

  async function draw(plot, spec) {
    const stage = element("div", "", { className: "ec-live" }), width = plot.clientWidth, still = plot.querySelector(".ec-static");
    const embed = await loaded(`${folder}vega.js`, "vegaEmbed");
    const made = await embed(stage, fitted(spec, width), OPTIONS);
    plot.replaceChildren(stage, ...(still ? [still] : [])); // paper shows the static chart
    plot.dataset.state = "interactive";
    follow(plot, made.view, width);
    return made.view;
  }

  /* Keep the chart as wide as its place. */
  function follow(plot, view, last) {
    new ResizeObserver(() => {
      const width = plot.clientWidth;
      if (!plot.isConnected || width === 0 || width === last) { return; }
      last = width;
      view.width(width).runAsync();
    }).observe(plot);
  }

  window.epochcostCharts = { show };
  onPage(() => {
    const seen = new IntersectionObserver(entries => entries.filter(entry => entry.isIntersecting).forEach(({ target }) => {
      seen.unobserve(target);
      view(target).catch(error => {
        target.dataset.state = "still";
        console.error("epochcost: the chart stays static:", error);
      });
    }), { rootMargin: MARGIN });
    document.querySelectorAll(".ec-plot:not([data-state])").forEach(plot => {
      if (!plot.querySelector(".ec-static") && !plot.dataset.ecLater) { return; }
      plot.dataset.state = "static";
      seen.observe(plot);
    });
  });
})();
