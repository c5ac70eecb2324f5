// Runs before the first paint, so that a page in the chosen theme never flashes in the other one.
(function () {
  try {
    var chosen = localStorage.getItem("hangar.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch (_) {
    // Storage may be forbidden; the system's theme is used then.
  }
})();
