/**
 * A name that programs run or obey without being asked to, and who does. A name fits a path that ends with it. In
 * one name "*" stands for anything, and the name "**" for any number of names. A name that ends with "/" is about
 * everything below such a directory. What fits a name with "!" before it is obeyed by nobody. Upper and lower case
 * are the same, as they are on some file systems. The runner reads names in the same way: receipt-rules.h.
 */
export type ObeyedName = readonly [name: string, by: string];
