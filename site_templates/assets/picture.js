/* A button below each chart that saves it as PNG with its current selection and palette. Without
   JavaScript there is a link to the SVG. */
(function () {
  "use strict";

  var SCALE = 2, element = window.epochcostShown.element;

  /* The chart's SVG with colours instead of CSS variables, which a picture cannot resolve. */
  function resolved(svg, style) {
    var copy = svg.cloneNode(true), width = svg.viewBox.baseVal.width * SCALE, height = svg.viewBox.baseVal.height * SCALE;
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    var text = new XMLSerializer().serializeToString(copy);
    text = text.replace(/var\((--ec-[a-z0-9-]+)\)/g, function (_, name) {
      return style.getPropertyValue(name).trim();
    });
    return { text: text, width: width, height: height };
  }

  function painted(drawing, paper) {
    return new Promise(function (resolve, reject) {
      var image = new Image();
      image.onload = function () {
        var canvas = element("canvas", "", { width: drawing.width, height: drawing.height });
        var context = canvas.getContext("2d");
        context.fillStyle = paper;
        context.fillRect(0, 0, canvas.width, canvas.height);
        context.drawImage(image, 0, 0, canvas.width, canvas.height);
        resolve(canvas.toDataURL("image/png"));
      };
      image.onerror = function () { reject(new Error("the chart's SVG cannot be shown")); };
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(drawing.text);
    });
  }

  async function save(plot) {
    var style = getComputedStyle(plot);
    var paper = style.getPropertyValue("--ec-paper").trim();
    var href = await painted(resolved(plot.querySelector("svg"), style), paper);
    element("a", "", { href: href, download: (plot.dataset.ecFigure || plot.dataset.ecLater) + ".png" }).click();
  }

  function start() {
    document.querySelectorAll(".ec-figure").forEach(function (figure) {
      var plot = figure.querySelector(".ec-plot");
      var tools = figure.querySelector(".ec-tools p") || figure.querySelector(".ec-tools");
      if (!plot || !(plot.querySelector("svg") || plot.dataset.ecLater) || !tools || tools.querySelector(".ec-png")) { return; }
      var button = element("button", "PNG", { type: "button", className: "ec-png" });
      button.addEventListener("click", function () {
        save(plot).catch(function (error) { console.error("epochcost: no PNG:", error); });
      });
      tools.insertBefore(button, tools.querySelector("a[href*='embed/']"));
    });
  }

  /* Material's observable emits at every page of instant navigation. */
  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
