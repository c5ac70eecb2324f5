// Runs before anything else of the page, which is still being loaded.
(function () {
  var theme = null;
  var token = null;
  try {
    theme = localStorage.getItem("hangar.theme");
    token = localStorage.getItem("hangar.token");
  } catch (_) {
    // Storage may be forbidden; the system's theme is used then.
  }
  // Before the first paint, so that a page in the chosen theme never flashes in the other one.
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;

  // What the page will ask for first is on its way while the page is; `api/first.ts` takes it from here. Where a token is
  // needed nothing is asked for that might be refused.
  var paths = ["/meta"];
  var session = /^\/sessions\/([^/]+)$/.exec(location.pathname);
  if (session !== null && token === null) paths.push("/sessions/" + session[1] + "/events?limit=500");
  window.hangarFirst = {};
  paths.forEach(function (path) {
    var answer = fetch("/api/v1" + path);
    // Whoever takes it hears of a failure.
    answer.catch(function () {});
    window.hangarFirst[path] = answer;
  });
})();
