/* Tables of the class ec-sortable: buttons in their heads sort them, long ones have a filter and
   pages. The sort key of a cell is its data-order, else its text. Until a table is ready,
   epochcost.css shows the rows of its first page. */
(() => {
  "use strict";

  const PAGE = 25, FEW = 10, { element, onPage } = window.epochcostShown, collator = new Intl.Collator("en", { numeric: true });

  function key(cell) {
    const text = (cell.dataset.order || cell.textContent).trim(), number = Number(text.replace(/[$€£,%\s]/g, ""));
    return text === "" || isNaN(number) ? text : number;
  }

  /* Compare cells in ascending (``sign`` 1) or descending order (-1). Numbers always come before texts, such as a dash. */
  function compare(one, other, sign) {
    if (typeof one !== typeof other) { return typeof one === "number" ? -1 : 1; }
    return sign * (typeof one === "number" ? one - other : collator.compare(one, other));
  }

  function button(text, click) {
    const made = element("button", text, { type: "button" });
    made.addEventListener("click", click);
    return made;
  }

  /* A field with its title, which calls ``changed`` after each change. */
  function labelled(title, field, changed) {
    const label = element("label", `${title} `);
    field.addEventListener("input", changed);
    label.append(field);
    return label;
  }

  /* Fields that narrow a table: for each title in its data-filters a select of the values in the rows'
     data-filter, or a number if the title ends in "from" or "up to". Returns a test of rows. */
  function narrowing(table, rows, changed) {
    const titles = (table.dataset.filters || "").split(";").filter(Boolean), box = element("details");
    const values = (row, at) => ((row.dataset.filter || "").split(";")[at] || "").split("|").filter(Boolean);
    box.append(element("summary", "More filters"));
    const tests = titles.map((title, at) => {
      const limit = / from| up to/.test(title), field = limit ? element("input", "", { type: "number", min: 0, step: "any" }) : element("select");
      const choices = Array.from(new Set(rows.flatMap(row => values(row, at)))).sort(collator.compare);
      if (!limit) { field.append(...["", ...choices].map(value => element("option", value || "any", { value }))); }
      if (choices.length > 1) { box.append(labelled(title, field, changed)); }
      return row => {
        const [least] = values(row, at), bound = Number(field.value);
        if (field.value === "") { return true; }
        if (!limit) { return values(row, at).includes(field.value); }
        return title.includes(" from") ? Number(least || 0) >= bound : least !== undefined && Number(least) <= bound;
      };
    });
    return { box, keeps: row => tests.every(test => test(row)) };
  }

  /* Add sorting, a filter and pages to a table. */
  function enliven(table) {
    const body = table.tBodies[0], rows = Array.from(body.rows), heads = Array.from(table.tHead.rows[0].cells);
    const info = element("span", "", { role: "status" }), paper = element("p", "", { className: "ec-cut" });
    const field = element("input", "", { type: "search" }), narrow = narrowing(table, rows, filter);
    const previous = button("Previous", () => turn(page - 1)), next = button("Next", () => turn(page + 1));
    const all = button("Show all", () => {
      size = rows.length;
      table.classList.remove("ec-brief"); // paper shows ten rows of a brief table
      turn(0);
    });
    let matches = rows, page = 0, size = Number(table.dataset.pageLength) || PAGE;

    function turn(to) {
      page = to;
      const from = page * size, end = Math.min(from + size, matches.length);
      rows.forEach(row => { row.hidden = true; });
      matches.forEach((row, at) => {
        row.hidden = false;
        row.classList.toggle("ec-other-page", at < from || at >= end);
      });
      info.textContent = (matches.length ? `${from + 1} to ${end} of ${matches.length}` : "No row matches.") +
        (matches.length < rows.length ? ` (of ${rows.length} rows)` : "");
      paper.textContent = matches.length > FEW ? `${FEW} of ${matches.length} rows; the page on the screen has all.` : "";
      previous.disabled = page === 0;
      next.disabled = end === matches.length;
      all.hidden = matches.length <= size;
    }

    function sort(column) {
      const down = heads[column].getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
      heads.forEach(head => head.removeAttribute("aria-sort"));
      heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort((one, other) => compare(key(one.cells[column]), key(other.cells[column]), sign));
      matches = rows.filter(row => matches.includes(row));
      body.append(...rows);
      turn(0);
    }

    function filter() {
      const words = field.value.toLowerCase().split(/\s+/);
      matches = rows.filter(row => {
        const text = row.textContent.toLowerCase();
        return narrow.keeps(row) && words.every(word => text.includes(word));
      });
      turn(0);
    }

    heads.forEach((head, column) => head.replaceChildren(button(head.textContent, () => sort(column))));
    if (rows.length > FEW) {
      table.before(bar(labelled("Filter", field, filter), table.dataset.filters ? narrow.box : "", info));
    }
    if (rows.length > size) { table.after(bar(previous, next, all)); }
    if (table.classList.contains("ec-brief")) { table.after(paper); }
    table.dataset.state = "ready";
    turn(0);
  }

  function bar(...controls) {
    const made = element("div", "", { className: "ec-bar" });
    made.append(...controls);
    return made;
  }

  function begin() { document.querySelectorAll(".ec-sortable:not([data-state])").forEach(enliven); }

  window.epochcostTables = { begin };
  onPage(begin);
})();
