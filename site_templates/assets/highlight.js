/* A legend's filter for everyone: a native checkbox for each of its entries, which the keyboard
   reaches and a screen reader names. A click on the legend ticks them too. */
(function () {
  "use strict";

  var SVG = "http://www.w3.org/2000/svg", element = window.epochcostShown.element;
  var count = 0;

  /* What a chart's legend picks by: the field, and its values as they stand there. */
  function picks(spec) {
    var bound = (spec.params || []).find(function (param) { return param.bind === "legend"; });
    if (!bound) { return null; }
    var field = bound.select.fields[0], values = [];
    spec.layer.forEach(function (unit) {
      var colour = unit.encoding.color;
      if (colour && colour.field === field && colour.scale) { values = colour.scale.domain; }
    });
    return values.length > 1 ? { store: bound.name + "_store", param: bound.name, field: field, values: values } : null;
  }

  /* The legend's own mark of a value: its colour and its shape. */
  function mark(plot, pick, value) {
    var svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "-9 -9 18 18");
    svg.setAttribute("aria-hidden", "true");
    var found = Array.from(plot.querySelectorAll(".role-legend-symbol path")).find(function (path) {
      var item = path.__data__;
      return item && item.mark.name === pick.field + "_legend_symbols" && item.datum.value === value;
    });
    if (found) {
      var copy = found.cloneNode();
      copy.removeAttribute("transform");
      copy.removeAttribute("opacity");
      svg.append(copy);
    }
    return svg;
  }

  function entry(plot, pick, value, changed) {
    var label = element("label"), box = element("input", "", { type: "checkbox", value: value });
    box.addEventListener("change", changed);
    label.append(box, mark(plot, pick, value), " " + value);
    return label;
  }

  /* The boxes of a chart, tied to its selection in both directions. */
  function boxes(plot, pick, view) {
    var set = element("fieldset", "", { className: "ec-picks", id: "ec-picks-" + (count += 1) });
    set.append(element("legend", "Highlight by " + pick.field.replace("_", " ") + " (none ticked: all)"));

    function ticked() {
      return Array.from(set.querySelectorAll("input:checked"), function (box) { return box.value; });
    }
    function changed() {
      var fields = [{ type: "E", field: pick.field }];
      view.data(pick.store, ticked().map(function (value) {
        return { fields: fields, values: [value] };
      })).runAsync();
    }
    pick.values.forEach(function (value) { set.append(entry(plot, pick, value, changed)); });
    view.addDataListener(pick.store, function (_, tuples) {
      var chosen = tuples.map(function (tuple) { return tuple.values[0]; });
      set.querySelectorAll("input").forEach(function (box) {
        box.checked = chosen.includes(box.value);
      });
    });
    return set;
  }

  /* The button stands among the chart's tools from the start, so that nothing moves later. */
  function offer(plot, tools) {
    var template = plot.querySelector("template");
    var pick = template && picks(JSON.parse(template.content.textContent));
    if (!pick) { return; }
    var button = element("button", "Highlight", { type: "button", className: "ec-pick", ariaExpanded: "false" });
    var set = null;
    button.addEventListener("click", async function () {
      var open = button.ariaExpanded !== "true";
      if (set === null) {
        set = boxes(plot, pick, await window.epochcostCharts.view(plot));
        tools.closest(".ec-tools").after(set);
        button.setAttribute("aria-controls", set.id);
      }
      set.hidden = !open;
      button.ariaExpanded = open;
    });
    tools.append(button);
  }

  function start() {
    document.querySelectorAll(".ec-plot").forEach(function (plot) {
      var beside = plot.parentElement.querySelector(".ec-tools");
      var tools = beside && (beside.querySelector("p") || beside);
      if (tools && !tools.querySelector(".ec-pick")) { offer(plot, tools); }
    });
  }

  /* Material's observable emits at every page of instant navigation. */
  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
