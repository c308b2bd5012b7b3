/** Whether the first line of a script ends with a carriage return: it would be a part of its interpreter's name, or of its first command. */
export function hasCarriageReturn(script: string): boolean {
  return /^[^\n]*\r\n/.test(script);
}
