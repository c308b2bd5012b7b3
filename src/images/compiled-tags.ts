/** The toolbox's tag by architecture, as the build of this program writes it here: then nobody has to read what it is made of. */
export const compiledTags: Readonly<Record<string, string>> = {};
