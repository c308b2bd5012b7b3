import { config } from "zod";

// Before any schema is made: compiling a validator pays off after thousands of values, and a command has hundreds at most.
config({ jitless: true });
