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

  /* The words of a text in lines that fit a width. */
  function wrapped(context, text, width) {
    var lines = [""];
    text.split(/\s+/).forEach(function (word) {
      var longer = (lines[lines.length - 1] + " " + word).trim();
      if (context.measureText(longer).width > width) { lines.push(word); } else { lines[lines.length - 1] = longer; }
    });
    return lines;
  }

  /* The drawing on paper, below its title and above its source. */
  function painted(drawing, style, title, source) {
    return new Promise(function (resolve, reject) {
      var image = new Image(), colour = function (name) { return style.getPropertyValue("--ec-" + name).trim(); };
      image.onload = function () {
        var canvas = element("canvas", "", { width: drawing.width }), context = canvas.getContext("2d");
        var font = "600 " + 15 * SCALE + "px " + style.fontFamily, line = 20 * SCALE, edge = 8 * SCALE;
        context.font = font;
        var lines = wrapped(context, title, drawing.width - 2 * edge), top = line * lines.length + edge;
        canvas.height = top + drawing.height + line;
        context.fillStyle = colour("paper");
        context.fillRect(0, 0, canvas.width, canvas.height);
        context.drawImage(image, 0, top, drawing.width, drawing.height);
        context.font = font;
        context.fillStyle = colour("ink");
        lines.forEach(function (text, at) { context.fillText(text, edge, line * (at + 1)); });
        context.font = 11 * SCALE + "px " + style.fontFamily;
        context.fillStyle = colour("soft");
        context.fillText("epochcost. " + source, edge, canvas.height - edge);
        resolve(canvas.toDataURL("image/png"));
      };
      image.onerror = function () { reject(new Error("the chart's SVG cannot be shown")); };
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(drawing.text);
    });
  }

  async function save(plot) {
    var style = getComputedStyle(plot), frame = plot.parentElement;
    var title = frame.querySelector("figcaption strong").textContent;
    var source = frame.querySelector(".ec-origin").textContent;
    var href = await painted(resolved(plot.querySelector("svg"), style), style, title, source);
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
