// Runs first, while the rest of the page is loading.
(function () {
  var theme = null;
  var machine = [];
  var token = null;
  try {
    theme = localStorage.getItem("hangar.theme");
    machine = (localStorage.getItem("hangar.appearance") || "").split(" ");
    token = localStorage.getItem("hangar.token");
  } catch (_) {
    // Storage may be forbidden; the system's theme is used then.
  }
  // Before the first paint, so that a page in the chosen theme never flashes in the other one.
  if (theme === null) theme = machine[0];
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  if (machine[1] === "compact") document.documentElement.dataset.density = "compact";

  // Start the first requests of the page early; `api/first.ts` picks up the answers. If a token is needed, send only
  // requests that work without one.
  var paths = ["/meta"];
  var session = /^\/sessions\/([^/]+)$/.exec(location.pathname);
  if (session !== null && token === null) paths.push("/sessions/" + session[1] + "/events?limit=500");
  window.hangarFirst = {};
  paths.forEach(function (path) {
    var answer = fetch("/api/v1" + path);
    // `api/first.ts` handles failures.
    answer.catch(function () {});
    window.hangarFirst[path] = answer;
  });
})();
