/* Folds: what a link leads into is opened, and print shows all. A fold opens and closes by itself
   without this script, and a browser's own search opens it. */
(function () {
  "use strict";

  /* What the address names; one that breaks off within a letter's code names nothing. */
  function named() {
    try {
      return document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch (error) {
      return null;
    }
  }

  /* The element that the address names, with every fold around it open. */
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
