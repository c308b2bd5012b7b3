/** The code that a person enters at `url`, in a browser on any machine. */
export interface DeviceCode {
  url: string;
  code: string;
}
