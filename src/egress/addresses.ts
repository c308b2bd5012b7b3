/** Of the sandbox's loopback, where programs reach brig; not where their own servers are. */
export const PROXY_ADDRESS = { address: "127.83.0.1", port: 3128 } as const;
export const NAME_SERVER = { address: "127.83.0.1", port: 53 } as const;
