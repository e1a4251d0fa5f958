/* Tables of the class ec-sortable: buttons in their heads sort them, long ones have a filter and
   pages. The sort key of a cell is its data-order, else its text. Until a table is ready,
   epochcost.css shows the rows of its first page. */
(function () {
  "use strict";

  var PAGE = 25, FEW = 10;
  var element = window.epochcostShown.element, collator = new Intl.Collator("en", { numeric: true });

  function key(cell) {
    var text = (cell.dataset.order || cell.textContent).trim(), number = Number(text.replace(/[$€£,%\s]/g, ""));
    return text === "" || isNaN(number) ? text : number;
  }

  /* Numbers come before texts. */
  function compare(one, other) {
    if (typeof one !== typeof other) { return typeof one === "number" ? -1 : 1; }
    return typeof one === "number" ? one - other : collator.compare(one, other);
  }

  function button(text, click) {
    var made = element("button", text, { type: "button" });
    made.addEventListener("click", click);
    return made;
  }

  /* Fields that narrow a table: for each title in its data-filters a select of the values in the rows'
     data-filter, or a number if the title ends in "from" or "up to". Returns a test of rows. */
  function narrowing(table, rows, changed) {
    var titles = (table.dataset.filters || "").split(";").filter(Boolean), box = element("details");
    function values(row, at) { return ((row.dataset.filter || "").split(";")[at] || "").split("|").filter(Boolean); }
    var fields = titles.map(function (title, at) {
      var limit = / from| up to/.test(title), label = element("label", title + " ");
      var choices = Array.from(new Set(rows.flatMap(function (row) { return values(row, at); }))).sort(collator.compare);
      var field = limit ? element("input", "", { type: "number", min: 0, step: "any" }) : element("select");
      if (!limit) { field.append.apply(field, [""].concat(choices).map(function (value) { return element("option", value || "any", { value: value }); })); }
      field.addEventListener("input", changed);
      label.append(field);
      if (choices.length > 1) { box.append(label); }
      return field;
    });
    box.prepend(element("summary", "More filters"));
    return { box: box, keeps: function (row) {
      return fields.every(function (field, at) {
        var listed = values(row, at), limit = Number(field.value);
        if (field.value === "") { return true; }
        if (field.localName === "select") { return listed.includes(field.value); }
        return titles[at].includes(" from") ? Number(listed[0] || 0) >= limit : listed.length > 0 && Number(listed[0]) <= limit;
      });
    } };
  }

  /* Add sorting, a filter and pages to a table. */
  function enliven(table) {
    var body = table.tBodies[0], rows = Array.from(body.rows), matches = rows, page = 0;
    var size = Number(table.dataset.pageLength) || PAGE, heads = Array.from(table.tHead.rows[0].cells);
    var info = element("span", "", { role: "status" }), previous, next, all;
    var paper = element("p", "", { className: "ec-cut" });
    var field = element("input", "", { type: "search" }), narrow = narrowing(table, rows, filter);

    function show() {
      var from = page * size, to = Math.min(from + size, matches.length);
      rows.forEach(function (row) { row.hidden = true; });
      matches.forEach(function (row, at) {
        row.hidden = false;
        row.classList.toggle("ec-other-page", at < from || at >= to);
      });
      info.textContent = matches.length ? from + 1 + " to " + to + " of " + matches.length : "No row matches.";
      if (matches.length < rows.length) { info.textContent += " (of " + rows.length + " rows)"; }
      paper.textContent = matches.length > FEW ? FEW + " of " + matches.length + " rows; the page on the screen has all." : "";
      if (!previous) { return; }
      previous.disabled = page === 0;
      next.disabled = to === matches.length;
      all.hidden = matches.length <= size;
    }

    function turn(to) { page = to; show(); }

    function sort(column) {
      var down = heads[column].getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
      heads.forEach(function (head) { head.removeAttribute("aria-sort"); });
      heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort(function (one, other) { return sign * compare(key(one.cells[column]), key(other.cells[column])); });
      matches = rows.filter(function (row) { return matches.includes(row); });
      body.append.apply(body, rows);
      turn(0);
    }

    function filter() {
      var words = field.value.toLowerCase().split(/\s+/);
      matches = rows.filter(function (row) {
        var shown = row.textContent.toLowerCase();
        return narrow.keeps(row) && words.every(function (word) { return shown.includes(word); });
      });
      turn(0);
    }

    heads.forEach(function (head, column) {
      head.replaceChildren(button(head.textContent, function () { sort(column); }));
    });
    if (rows.length > FEW) {
      var label = element("label", "Filter ");
      field.addEventListener("input", filter);
      label.append(field);
      bar(table, label, table.dataset.filters ? narrow.box : "", info);
    }
    if (rows.length > size) {
      previous = button("Previous", function () { turn(page - 1); });
      next = button("Next", function () { turn(page + 1); });
      all = button("Show all", function () {
        size = rows.length;
        table.classList.remove("ec-brief"); // paper shows ten rows of a brief table
        turn(0);
      });
      table.after(bar(table, previous, next, all));
    }
    if (table.classList.contains("ec-brief")) { table.after(paper); }
    table.dataset.state = "ready";
    show();
  }

  /* Controls above a table. */
  function bar(table) {
    var made = element("div", "", { className: "ec-bar" });
    made.append.apply(made, Array.prototype.slice.call(arguments, 1));
    table.before(made);
    return made;
  }

  function start() { document.querySelectorAll(".ec-sortable:not([data-state])").forEach(enliven); }

  window.epochcostTables = { begin: start };

  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
