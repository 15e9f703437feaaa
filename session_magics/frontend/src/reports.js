// A view never answers a program's questions to its terminal: the holder does, whether somebody looks or not. Otherwise
// each view would answer, and after a reload of the page the questions of long ago would be answered once more.

/**
 * @param {import("@xterm/xterm").Terminal} term
 */
export function mute(term) {
  const { parser } = term;
  const yes = () => true;
  for (const prefix of [undefined, "?", ">", "="]) {
    parser.registerCsiHandler({ prefix, final: "c" }, yes); // what are you
    parser.registerCsiHandler({ prefix, final: "n" }, yes); // how are you, where is the cursor
    parser.registerCsiHandler({ prefix, final: "p", intermediates: "$" }, yes); // is this mode set
  }
  parser.registerCsiHandler({ prefix: ">", final: "q" }, yes); // your version
  parser.registerCsiHandler({ final: "t" }, yes); // your size, your title
  parser.registerCsiHandler({ prefix: "?", final: "u" }, yes); // your keyboard
  parser.registerDcsHandler({ intermediates: "$", final: "q" }, yes); // your settings
  parser.registerDcsHandler({ intermediates: "+", final: "q" }, yes); // your capabilities
  for (const colour of [4, 10, 11, 12]) parser.registerOscHandler(colour, (data) => data.includes("?"));
}
