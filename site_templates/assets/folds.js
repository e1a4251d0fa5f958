/* Folds: links open the folds around their target, and printing opens all. Without this script folds
   still open by hand and by the browser's search. */
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

  var opened = [];

  addEventListener("beforeprint", function () {
    opened = Array.from(document.querySelectorAll("details.ec-fold:not([open])"));
    opened.forEach(function (fold) { fold.open = true; });
  });
  addEventListener("afterprint", function () {
    opened.forEach(function (fold) { fold.open = false; });
  });
  addEventListener("hashchange", reveal);

  /* Material's observable emits at every page of instant navigation. */
  if (window.document$) { window.document$.subscribe(reveal); } else { reveal(); }
})();
