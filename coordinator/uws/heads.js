// Imported before the library, which reads the environment while it is loaded. By itself it takes heads of 4 KiB. What
// goes beyond 16 KiB is for its own count, which includes more than the bytes of the head.
const NAME = 'UWS_HTTP_MAX_HEADERS_SIZE'
process.env[NAME] = '17000'

/** Must be called when the library is loaded: processes that this one starts must not inherit the setting. */
export function forgetHeads() {
  delete process.env[NAME]
}
