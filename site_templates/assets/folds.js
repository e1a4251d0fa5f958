/* Folds: links open the folds around their target. Without this script folds still open by hand and by
   the browser's search. Paper shows the open ones. */
(function () {
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
    var target = named();
    if (!target) { return; }
    var closed = false;
    for (var fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      closed = closed || !fold.open;
      fold.open = true;
    }
    if (closed) { target.scrollIntoView(); }
  }

  addEventListener("hashchange", reveal);

  /* Material's observable emits at every page of instant navigation. */
  if (window.document$) { window.document$.subscribe(reveal); } else { reveal(); }
})();
