// Draws what it is sent, in a page that belongs to no site, may ask nobody and keeps nothing.
const fonts = "system-ui, sans-serif";
const settings = {
  startOnLoad: false,
  securityLevel: "strict",
  suppressErrorRendering: true,
  htmlLabels: false,
  flowchart: { htmlLabels: false },
  fontFamily: fonts,
  themeVariables: { fontFamily: fonts },
  maxTextSize: 50_000,
  secure: ["securityLevel", "startOnLoad", "suppressErrorRendering", "htmlLabels", "maxTextSize", "maxEdges", "secure", "themeCSS"],
};

addEventListener("message", async ({ data: { number, code, isDark }, source }) => {
  if (source !== parent) return;
  try {
    mermaid.initialize({ ...settings, theme: isDark ? "dark" : "neutral" });
    const { svg } = await mermaid.render(`diagram-${number}`, code);
    parent.postMessage({ number, svg: sized(svg) }, "*");
  } catch (error) {
    parent.postMessage({ number, why: String(error?.message ?? error).split("\n")[0] }, "*");
  }
});
parent.postMessage({ isReady: true }, "*");

/** The same, as large as it was drawn: an image that says only "100 %" has no size of its own. */
function sized(svg) {
  const drawn = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
  const { width, height } = drawn.viewBox.baseVal;
  drawn.setAttribute("width", String(Math.ceil(width)));
  drawn.setAttribute("height", String(Math.ceil(height)));
  return new XMLSerializer().serializeToString(drawn);
}
