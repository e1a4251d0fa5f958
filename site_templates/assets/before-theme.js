/* Runs before the theme. A page opened from the disk cannot fetch: the theme's instant navigation and
   its search would fail, so both are removed. Elsewhere the search index, larger than any page, is
   loaded when a reader is about to search. Printing leaves folds as they are; the theme would open them. */
(() => {
  "use strict";

  function fromDisk() {
    const element = document.getElementById("__config"), config = JSON.parse(element.textContent);
    config.features = config.features.filter(feature => !feature.startsWith("navigation.instant"));
    element.textContent = JSON.stringify(config);
    document.querySelectorAll("[data-md-component=search], label[for=__search]").forEach(part => part.remove());
  }

  function searchLater() {
    const request = XMLHttpRequest.prototype, { open, send } = request;
    request.open = function (method, address) {
      this.searched = /\/search_index\.json$/.test(address);
      return open.apply(this, arguments);
    };
    request.send = function () {
      const field = this.searched && document.querySelector("[data-md-component=search-query]");
      const searches = field === document.activeElement || new URLSearchParams(location.search).has("q");
      if (!field || searches) { return send.apply(this, arguments); }
      field.addEventListener("focus", () => send.call(this), { once: true });
    };
  }

  /* Title, address and day for head and foot of each printed page (epochcost.css). */
  addEventListener("beforeprint", event => {
    const { style } = document.documentElement, day = new Date().toLocaleDateString("en-GB", { dateStyle: "long" });
    event.stopImmediatePropagation();
    style.setProperty("--ec-title", JSON.stringify(document.title));
    style.setProperty("--ec-address", JSON.stringify(`${location.href} · printed ${day}`));
  });

  if (location.protocol === "file:") { fromDisk(); } else { searchLater(); }
})();
