/** What a person does in a browser of any machine. */
export interface DeviceCode {
  url: string;
  code: string;
}
