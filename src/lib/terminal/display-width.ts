const escapeCharacter = "\x1b";
const colour = new RegExp(`${escapeCharacter}\\[[0-9;:]*m`, "g");
const takesNoRoom = /[\p{Mn}\p{Me}\p{Default_Ignorable_Code_Point}]/u;
const takesTwo =
  /[\p{Emoji_Presentation}\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\u3001-\u303e\ufe30-\ufe6b\uff01-\uff60\uffe0-\uffe6]/u;

/** How many columns a text takes on a terminal. Colours take none, East Asian characters and most emoji two. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text.replace(colour, "")) width += characterWidth(character);
  return width;
}

/** The beginning of a text without colours that fits into so many columns; a cut is marked with an ellipsis. */
export function fitWidth(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let fitting = "";
  let width = 0;
  for (const character of text) {
    width += characterWidth(character);
    if (width > columns - 1) break;
    fitting += character;
  }
  return columns < 1 ? "" : `${fitting}…`;
}

function characterWidth(character: string): number {
  if (takesNoRoom.test(character)) return 0;
  return takesTwo.test(character) ? 2 : 1;
}
