/* A button below each chart that saves it as PNG, as it is shown: selection, palette and all.
   Without JavaScript the link to the SVG beside it remains. */
(function () {
  "use strict";

  var SCALE = 2;

  /* The chart's SVG with colours instead of variables, which a picture knows nothing of. */
  function resolved(svg, style) {
    var copy = svg.cloneNode(true);
    var box = svg.viewBox.baseVal;
    var width = box && box.width || svg.clientWidth;
    var height = box && box.height || svg.clientHeight;
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width * SCALE);
    copy.setAttribute("height", height * SCALE);
    var text = new XMLSerializer().serializeToString(copy);
    text = text.replace(/var\((--ec-[a-z0-9-]+)\)/g, function (_, name) {
      return style.getPropertyValue(name).trim();
    });
    return { text: text, width: width * SCALE, height: height * SCALE };
  }

  function painted(drawing, paper) {
    return new Promise(function (resolve, reject) {
      var image = new Image();
      image.onload = function () {
        var canvas = document.createElement("canvas");
        canvas.width = drawing.width;
        canvas.height = drawing.height;
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
    var link = document.createElement("a");
    link.href = await painted(resolved(plot.querySelector("svg"), style), paper);
    link.download = plot.dataset.ecFigure + ".png";
    link.click();
  }

  function start() {
    document.querySelectorAll(".ec-figure").forEach(function (figure) {
      var plot = figure.querySelector(".ec-plot");
      var tools = figure.querySelector(".ec-tools p") || figure.querySelector(".ec-tools");
      if (!plot || !(plot.querySelector("svg") || plot.dataset.ecLater) || !tools || tools.querySelector(".ec-png")) { return; }
      var button = document.createElement("button");
      button.type = "button";
      button.className = "ec-png";
      button.textContent = "PNG";
      button.addEventListener("click", function () {
        save(plot).catch(function (error) { console.error("epochcost: no PNG:", error); });
      });
      tools.insertBefore(button, tools.querySelector("a[href*='embed/']"));
    });
  }

  /* Material's observable emits at every page of instant navigation. */
  if (window.document$) { window.document$.subscribe(start); } else { start(); }
})();
