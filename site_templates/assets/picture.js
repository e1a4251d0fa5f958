/* A button below each chart that saves it as PNG with its current selection and palette. Without
   JavaScript there is a link to the SVG. */
(() => {
  "use strict";

  const SCALE = 2, { element, onPage } = window.epochcostShown;

  /* The chart's SVG with colours instead of CSS variables, which a picture cannot resolve. */
  function resolved(svg, style) {
    const copy = svg.cloneNode(true), box = svg.viewBox.baseVal, size = { width: box.width * SCALE, height: box.height * SCALE };
    Object.entries({ xmlns: "http://www.w3.org/2000/svg", ...size }).forEach(([name, value]) => copy.setAttribute(name, value));
    const text = new XMLSerializer().serializeToString(copy).replace(
      /var\((--ec-[a-z0-9-]+)\)/g, (_, name) => style.getPropertyValue(name).trim()
    );
    return { text, ...size };
  }

  /* The words of a text in lines that fit a width. */
  function wrapped(context, text, width) {
    const lines = [""];
    text.split(/\s+/).forEach(word => {
      const longer = `${lines.at(-1)} ${word}`.trim();
      if (context.measureText(longer).width > width) { lines.push(word); } else { lines[lines.length - 1] = longer; }
    });
    return lines;
  }

  /* The drawing on paper, below its title and above its source. */
  async function painted(drawing, style, title, source) {
    const image = element("img", "", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing.text)}` });
    await image.decode();
    const colour = name => style.getPropertyValue(`--ec-${name}`).trim();
    const canvas = element("canvas", "", { width: drawing.width }), context = canvas.getContext("2d");
    const font = `600 ${15 * SCALE}px ${style.fontFamily}`, line = 20 * SCALE, edge = 8 * SCALE;
    context.font = font;
    const lines = wrapped(context, title, drawing.width - 2 * edge), top = line * lines.length + edge;
    canvas.height = top + drawing.height + line;
    context.fillStyle = colour("paper");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, top, drawing.width, drawing.height);
    context.font = font;
    context.fillStyle = colour("ink");
    lines.forEach((text, at) => context.fillText(text, edge, line * (at + 1)));
    context.font = `${11 * SCALE}px ${style.fontFamily}`;
    context.fillStyle = colour("soft");
    context.fillText(`epochcost. ${source}`, edge, canvas.height - edge);
    return canvas.toDataURL("image/png");
  }

  async function save(plot) {
    const style = getComputedStyle(plot), frame = plot.parentElement;
    const [title, source] = ["figcaption strong", ".ec-origin"].map(part => frame.querySelector(part).textContent);
    const href = await painted(resolved(plot.querySelector("svg"), style), style, title, source);
    element("a", "", { href, download: `${plot.dataset.ecFigure || plot.dataset.ecLater}.png` }).click();
  }

  onPage(() => document.querySelectorAll(".ec-figure").forEach(figure => {
    const plot = figure.querySelector(".ec-plot");
    const tools = figure.querySelector(".ec-tools p") || figure.querySelector(".ec-tools");
    if (!plot || !(plot.querySelector("svg") || plot.dataset.ecLater) || !tools || tools.querySelector(".ec-png")) { return; }
    const button = element("button", "PNG", { type: "button", className: "ec-png" });
    button.addEventListener("click", () => save(plot).catch(error => console.error("epochcost: no PNG:", error)));
    tools.insertBefore(button, tools.querySelector("a[href*='embed/']"));
  }));
})();
