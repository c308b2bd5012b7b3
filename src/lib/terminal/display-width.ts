import { eastAsianWidth } from "get-east-asian-width";

const escapeCharacter = "\x1b";
const colour = new RegExp(`${escapeCharacter}\\[[0-9;:]*m`, "g");
const takesNoRoom = /[\p{Mn}\p{Me}\p{Default_Ignorable_Code_Point}]/u;
const ascii = /^[\x20-\x7e]*$/;

/**
 * The columns of a text on a terminal, with colours. Not string-width: loading it creates an Intl.Segmenter,
 * 9 ms for every command, and its time grows with the square of the length, 20 s for 100 000 characters.
 */
export function displayWidth(text: string): number {
  if (ascii.test(text)) return text.length;
  let width = 0;
  for (const character of text.replace(colour, "")) width += characterWidth(character);
  return width;
}

/** Cuts a text without colours to this many columns, with an ellipsis. */
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
  return takesNoRoom.test(character) ? 0 : eastAsianWidth(character.codePointAt(0) ?? 0);
}
