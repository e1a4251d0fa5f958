/* Tables of the class ec-sortable, which DataTables sorts, filters and turns page by page once they
   come into view. What a cell is sorted by may stand in its data-order; where there is nothing, in
   none. A page has as many rows as epochcost.css shows beforehand. */
(function () {
  "use strict";

  var folder = document.currentScript.src.replace(/[^/]*$/, "");
  var PAGE = 25;
  var FEW = 10;
  var WORDS = { info: "_START_ to _END_ of _TOTAL_", infoEmpty: "", infoFiltered: "(_MAX_ in all)", search: "Filter", zeroRecords: "Nothing matches." };

  async function sortable(table) {
    var DataTable = await window.epochcostShown.loaded(folder + "datatables.js", "DataTable");
    var rows = table.tBodies[0].rows.length, page = Number(table.dataset.pageLength) || PAGE;
    var some = rows > FEW, many = rows > page;
    return new DataTable(table, {
      autoWidth: false, language: WORDS, order: [], pageLength: page, paging: many,
      layout: {
        topStart: some ? "search" : null, topEnd: some ? "info" : null,
        bottomStart: null, bottomEnd: many ? "paging" : null
      }
    });
  }

  var seen = new IntersectionObserver(function (entries) {
    entries.filter(function (entry) { return entry.isIntersecting; }).forEach(function (entry) {
      var table = entry.target;
      seen.unobserve(table);
      sortable(table).catch(function (error) {
        table.classList.add("dataTable");
        console.error("epochcost: the table stays as it is:", error);
      });
    });
  }, { rootMargin: "200px" });

  function start() {
    document.querySelectorAll(".ec-sortable:not(.dataTable)").forEach(function (table) { seen.observe(table); });
  }

  /* Paper has no other pages. */
  function each(length) {
    document.querySelectorAll(".ec-sortable.dataTable").forEach(function (table) {
      var page = length || Number(table.dataset.pageLength) || PAGE;
      if (window.DataTable) { new window.DataTable.Api(table).page.len(page).draw(); }
    });
  }
  addEventListener("beforeprint", function () { each(-1); });
  addEventListener("afterprint", function () { each(0); });

  window.epochcostTables = { begin: start };

  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
