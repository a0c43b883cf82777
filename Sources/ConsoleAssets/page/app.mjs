// The console: which view is shown, whether somebody is signed in.
import { api, close, listen, on, signIn, signOut } from "./api.mjs";
import { byId, toast } from "./dom.mjs";
import { startInspect } from "./inspect.mjs";
import { showLibrary, startLibrary } from "./library.mjs";
import { showNetwork, startNetwork } from "./network.mjs";
import { startPlayer } from "./player.mjs";
import { showTools, startTools } from "./tools.mjs";
import { startWaterfall } from "./waterfall.mjs";

const views = { play: () => {}, library: showLibrary, network: showNetwork, tools: showTools };
let isSignedIn = false, current = null;

const titles = { play: "Play", library: "Library", network: "Network", tools: "Tools" };

function showView() {
  const asked = location.hash.slice(1);
  const name = views[asked] ? asked : "play";
  for (const view of Object.keys(views)) byId(`view-${view}`).hidden = !isSignedIn || view !== name;
  byId("sign-in").hidden = isSignedIn;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${isSignedIn ? titles[name] : "Sign in"} · Sluice`;
  if (!isSignedIn || current === name) return;
  if (current) views[current](false);
  current = name;
  views[name](true);
}

const states = { connecting: "connecting", connected: "connected", paused: "paused", away: "the daemon is away", crowded: "too many consoles, or a proxy blocks events", outdated: "reload this page" };

function showState(state) {
  byId("link").className = `dot ${state}`;
  byId("link-text").textContent = states[state];
}

/** Shows the views once the daemon answers; false if somebody must sign in first. */
async function begin() {
  try {
    // Needs the token where the daemon has one, unlike its health.
    await api("api/settings");
  } catch (error) {
    if (error.isSignedOut) return false;
    if (!isSignedIn) {
      showState("away");
      setTimeout(begin, 2000);
    }
    return true;
  }
  isSignedIn = true;
  showView();
  listen(showState);
  return true;
}

addEventListener("sign-in", () => {
  // Every request of a page that is signed out says so; somebody may be typing.
  if (!isSignedIn && !byId("sign-in").hidden) return;
  // What a view does by itself ends with it.
  if (current) views[current](false);
  isSignedIn = false;
  current = null;
  close();
  showState("away");
  byId("link-text").textContent = "signed out";
  byId("sign-out").hidden = true;
  showView();
  byId("token").focus();
});

byId("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = byId("token"), error = byId("sign-in-error");
  error.textContent = "";
  try {
    await signIn(field.value);
    field.value = "";
    if (await begin()) byId("sign-out").hidden = false;
    else error.textContent = "The token is right, but the browser kept no cookie: allow cookies for this address.";
  } catch (failure) {
    error.textContent = failure.isSignedOut ? "That is not the access token of this daemon." : failure.message;
  }
});

byId("sign-out").addEventListener("click", async () => {
  await signOut().catch((error) => toast(error.message, true));
  dispatchEvent(new Event("sign-in"));
});

addEventListener("hashchange", showView);
// The address names the view: a jump within the page must not change it.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
// A browser has six connections for one host: pages that nobody sees leave them to the others.
document.addEventListener("visibilitychange", () => {
  if (!isSignedIn) return;
  if (document.hidden) {
    close();
    showState("paused");
  } else {
    listen(showState);
  }
});
on("hello", ({ version, token }) => {
  document.querySelector(".brand").title = `sluice ${version}`;
  byId("sign-out").hidden = !token;
});

// A token in the address, as entries have it, is given once and taken out of the history.
const given = new URLSearchParams(location.search).get("token");
if (given) {
  history.replaceState(null, "", location.pathname + location.hash);
  await signIn(given).catch(() => {});
}
startPlayer();
startWaterfall();
startLibrary();
startNetwork();
startTools();
startInspect();
await begin();
