// Keeps zod from compiling its validators to JavaScript. That pays off after thousands of values, and a command
// checks hundreds: `brig tools` starts 9 ms sooner. zod reads this setting when it is loaded, so this file must be imported first.
Object.assign(globalThis, { __zod_globalConfig: { jitless: true } });
