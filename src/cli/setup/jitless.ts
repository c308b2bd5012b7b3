import { config } from "zod";

// Must be imported before any schema is created. Compiling a validator pays off after thousands of values,
// and a command has hundreds.
config({ jitless: true });
