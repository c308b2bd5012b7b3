/** The toolbox's tag by architecture. The build of brig fills it in: then no files are read at run time. */
export const compiledTags: Readonly<Record<string, string>> = {};
