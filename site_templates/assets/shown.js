/* How scripts of the report load their data and show amounts, durations and tables; nothing is
   computed here. */
(function () {
  "use strict";

  var HOUR = 3600;
  var loading = {};

  /* What the script at an address leaves in a variable of the window, loaded once. */
  function loaded(address, variable) {
    loading[variable] = loading[variable] || new Promise(function (resolve, reject) {
      var script = document.createElement("script");
      script.src = address;
      script.onload = function () { resolve(window[variable]); };
      script.onerror = function () { reject(new Error("cannot load " + address)); };
      document.head.append(script);
    });
    return loading[variable];
  }

  function money(amount, currency) {
    var digits = amount !== 0 && Math.abs(amount) < 1 ? { maximumSignificantDigits: 3 } : {
      minimumFractionDigits: 2, maximumFractionDigits: 2
    };
    var options = Object.assign({ style: "currency", currency: currency }, digits);
    return new Intl.NumberFormat("en-US", options).format(amount);
  }

  function duration(seconds) {
    if (seconds < 90) { return seconds.toPrecision(3) + " s"; }
    if (seconds < 90 * 60) { return (seconds / 60).toPrecision(3) + " min"; }
    if (seconds < 48 * HOUR) { return (seconds / HOUR).toPrecision(3) + " h"; }
    return Math.round(seconds / HOUR / 24).toLocaleString("en-US") + " days";
  }

  function element(name, text, attributes) {
    var made = document.createElement(name);
    made.textContent = text || "";
    return Object.assign(made, attributes || {});
  }

  function small(text) { return element("small", text); }

  function cell(row, parts, right) {
    var made = element("td");
    if (right) { made.style.textAlign = "right"; }
    parts.forEach(function (part) { made.append(part); });
    row.append(made);
  }

  /* A table as Material frames it: it scrolls in its place. */
  function table(titles, rows) {
    var made = element("table"), head = element("tr"), body = element("tbody");
    titles.forEach(function (title) {
      head.append(element("th", title, { scope: "col" }));
    });
    rows.forEach(function (row) { body.append(row); });
    made.append(element("thead"), body);
    made.firstChild.append(head);
    var frame = element("div", "", { className: "md-typeset__table" });
    frame.append(made);
    var scroll = element("div", "", { className: "md-typeset__scrollwrap" });
    scroll.append(frame);
    return scroll;
  }

  window.epochcostShown = {
    cell: cell, duration: duration, element: element, loaded: loaded, money: money, small: small,
    table: table
  };
})();
