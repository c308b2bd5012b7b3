/** Address on the sandbox's loopback at which programs reach brig. It is not one that their own servers use. */
export const PROXY_ADDRESS = { address: "127.83.0.1", port: 3128 } as const;
export const NAME_SERVER = { address: "127.83.0.1", port: 53 } as const;
