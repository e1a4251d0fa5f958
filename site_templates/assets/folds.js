/* Folds: links open the folds around their target. Without this script folds still open by hand and by
   the browser's search. Paper shows the open ones. */
(() => {
  "use strict";

  /* The element that the address names; null for an incomplete escape sequence. */
  function named() {
    try {
      return document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch (error) {
      return null;
    }
  }

  /* Open every fold around the element that the address names. */
  function reveal() {
    const target = named();
    let closed = false;
    for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      closed ||= !fold.open;
      fold.open = true;
    }
    if (closed) { target.scrollIntoView(); }
  }

  addEventListener("hashchange", reveal);
  window.epochcostShown.onPage(reveal);
})();
