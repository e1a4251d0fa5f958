/* Shared by the report's scripts: loading data, and formatting amounts, durations and tables. */
(function () {
  "use strict";

  var HOUR = 3600;
  var loading = {};

  /* Load a script once, and return the variable of the window that it sets. */
  function loaded(address, variable) {
    loading[address] = loading[address] || new Promise(function (resolve, reject) {
      document.head.append(element("script", "", {
        src: address,
        onload: function () { resolve(window[variable]); },
        onerror: function () { reject(new Error("cannot load " + address)); }
      }));
    });
    return loading[address];
  }

  /* Two digits below ten cents, cents below a hundred, else whole. */
  function money(amount, currency) {
    var size = Math.abs(amount), tiny = size > 0 && size < 1e-4, cents = size < 100 ? 2 : 0;
    var digits = size > 0 && size < 0.1 ? { maximumSignificantDigits: 2 } : {
      minimumFractionDigits: cents, maximumFractionDigits: cents
    };
    var options = Object.assign({ style: "currency", currency: currency }, digits);
    return (tiny ? "under " : "") + new Intl.NumberFormat("en-US", options).format(tiny ? 1e-4 : amount);
  }

  /* Significant digits without a power of ten. */
  function rounded(value, digits) {
    return new Intl.NumberFormat("en-US", { maximumSignificantDigits: digits }).format(value);
  }

  /* After a share of busy time: requests that come together wait long above 80 %. */
  function busy(part) { return part > 0.8 ? " busy: requests queue, plan for more machines" : " busy"; }

  function duration(seconds) {
    if (seconds < 0.9995) { return rounded(seconds * 1000, 3) + " ms"; }
    if (seconds < 90) { return rounded(seconds, 3) + " s"; }
    if (seconds < 90 * 60) { return rounded(seconds / 60, 3) + " min"; }
    if (seconds < 96 * HOUR) { return rounded(seconds / HOUR, 3) + " h"; }
    return rounded(seconds / HOUR / 24, 3) + " days";
  }

  function element(name, text, attributes) {
    var made = document.createElement(name);
    made.textContent = text || "";
    return Object.assign(made, attributes || {});
  }

  function small(text) { return element("small", text); }

  /* Append a cell, aligned right for numbers; ``order`` is its sort key. */
  function cell(row, parts, right, order) {
    var made = element("td");
    if (order !== undefined) { made.dataset.order = order; }
    if (right) { made.style.textAlign = "right"; }
    parts.forEach(function (part) { made.append(part); });
    row.append(made);
  }

  /* A table that tables.js sorts; ``brief`` is the number of rows on a page. */
  function table(titles, rows, brief) {
    var made = element("table", "", { className: "ec-sortable" + (brief ? " ec-brief" : "") }), head = element("tr"), body = element("tbody");
    titles.forEach(function (title, at) {
      head.append(element("th", title, { scope: "col", style: rows[0].cells[at].getAttribute("style") || "" }));
    });
    body.append.apply(body, rows);
    if (brief) { made.dataset.pageLength = brief; }
    made.append(element("thead"), body);
    made.firstChild.append(head);
    var frame = element("div", "", { className: "ec-frame" });
    frame.append(made);
    return frame;
  }

  window.epochcostShown = {
    busy: busy, cell: cell, duration: duration, element: element, loaded: loaded, money: money, rounded: rounded,
    small: small, table: table
  };
})();
