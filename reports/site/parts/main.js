// Starts the page: first its frame, then its figures.
async function begin() {
  beginTheme();
  beginReleases();
  beginSearch();
  const draw = drawers[document.documentElement.dataset.page];
  if (typeof DecompressionStream === "undefined") {
    say("This browser is too old for these pages: it has no DecompressionStream (Chromium 80, Firefox 113, Safari 16.4).");
    return;
  }
  try {
    if (draw) await draw();
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    say(error.message === "missing" ? "A file of this report is missing. Write the report again (`iosig report`)." : `This page could not be drawn: ${error.message}`);
    throw error;
  }
}
document.addEventListener("DOMContentLoaded", begin);
