/* Opened from the disk, a browser fetches nothing. The theme's instant navigation then ends before
   the page has begun, and its search gets no index: both are taken away before the theme starts. */
(function () {
  "use strict";
  if (location.protocol !== "file:") { return; }
  var element = document.getElementById("__config");
  var config = JSON.parse(element.textContent);
  config.features = config.features.filter(function (feature) {
    return !feature.startsWith("navigation.instant");
  });
  element.textContent = JSON.stringify(config);
  document.querySelectorAll("[data-md-component=search], label[for=__search]").forEach(
    function (part) { part.remove(); }
  );
})();
