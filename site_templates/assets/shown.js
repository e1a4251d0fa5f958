/* Shared by the report's scripts: pages, data, and formatting amounts, durations and tables. */
(() => {
  "use strict";

  const HOUR = 3600, YEAR = 365.25 * 24 * HOUR, loading = {};

  /* Call a function now and at every page of instant navigation, which Material's observable emits. */
  function onPage(start) {
    if (window.document$) { window.document$.subscribe(start); } else { start(); }
  }

  /* Load a script once, and return the variable of the window that it sets. A failure is not the last try. */
  function loaded(address, variable) {
    loading[address] ??= new Promise((resolve, reject) => document.head.append(element("script", "", {
      src: address,
      onload: () => resolve(window[variable]),
      onerror: () => {
        delete loading[address];
        reject(new Error(`cannot load ${address}`));
      }
    })));
    return loading[address];
  }

  /* As epochcost.units writes amounts: two digits below one, cents below a hundred, else whole. */
  function money(amount, currency) {
    const size = Math.abs(amount), tiny = size > 0 && size < 1e-9;
    const exponent = Math.floor(Math.log10(Number(size.toPrecision(2))));
    const small = size > 0 && size < 0.1 ? 1 - exponent : 2, places = tiny ? 9 : size < 100 ? small : 0;
    const format = new Intl.NumberFormat("en-US", {
      style: "currency", currency, roundingMode: "halfEven", minimumFractionDigits: places, maximumFractionDigits: places
    });
    return (tiny ? "under " : "") + format.format(tiny ? 1e-9 : amount);
  }

  /* Significant digits without a power of ten. */
  function rounded(value, digits) {
    return new Intl.NumberFormat("en-US", { maximumSignificantDigits: digits }).format(value);
  }

  /* As epochcost.units writes shares. */
  function percent(share) { return `${share < 0.01 ? rounded(100 * share, 1) : Math.round(100 * share)} %`; }

  /* With the limits of units as in epochcost.units. A line never ends between number and unit. */
  function duration(seconds) {
    if (seconds < 0.0009995) { return `${rounded(seconds * 1e6, 3)}\u00a0µs`; }
    if (seconds < 0.9995) { return `${rounded(seconds * 1000, 3)}\u00a0ms`; }
    if (seconds < 120) { return `${rounded(seconds, 3)}\u00a0s`; }
    if (seconds < 2 * HOUR) { return `${rounded(seconds / 60, 3)}\u00a0min`; }
    if (seconds < 120 * HOUR) { return `${rounded(seconds / HOUR, 3)}\u00a0h`; }
    if (seconds < 2 * YEAR) { return `${rounded(seconds / HOUR / 24, 3)}\u00a0days`; }
    return `${rounded(seconds / YEAR, 3)}\u00a0years`;
  }

  function element(name, text, attributes) {
    return Object.assign(document.createElement(name), { textContent: text || "" }, attributes);
  }

  function small(text) { return element("small", text); }

  /* A value, and below it a remark unless it is empty. */
  function noted(value, remark) { return remark ? [value, element("br"), small(remark)] : [value]; }

  /* Append a cell, aligned right for numbers; ``order`` is its sort key. */
  function cell(row, parts, right, order) {
    const made = element("td");
    if (order !== undefined) { made.dataset.order = order; }
    if (right) { made.style.textAlign = "right"; }
    made.append(...parts);
    row.append(made);
  }

  /* A table that tables.js sorts; ``brief`` is the number of rows on a page. */
  function table(titles, rows, brief) {
    const made = element("table", "", { className: "ec-sortable" + (brief ? " ec-brief" : "") });
    const [frame, head] = [element("div", "", { className: "ec-frame" }), made.createTHead().insertRow()];
    titles.forEach((title, at) => head.append(
      element("th", title, { scope: "col", style: rows[0].cells[at].getAttribute("style") || "" })
    ));
    made.createTBody().append(...rows);
    if (brief) { made.dataset.pageLength = brief; }
    frame.append(made);
    return frame;
  }

  function fold(summary, inside, kind = "") {
    const made = element("details", "", { className: `ec-fold${kind}` });
    made.append(element("summary", summary), inside);
    return made;
  }

  window.epochcostShown = {
    cell, duration, element, fold, loaded, money, noted, onPage, percent, rounded, small, table
  };
})();
