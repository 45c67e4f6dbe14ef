/** Contrast of two colours, 1 to 21 as WCAG has it, below which a text cannot be told from its ground. */
const LEAST_CONTRAST = 1.3
const CONCEAL = '8'
/** Bright white, as a ground. */
const LAST_CODE = 107
const NO_COLOURS = ['39', '49']

type Rgb = readonly [red: number, green: number, blue: number]

/** As xterm has them; a theme may have others. */
const BASE: readonly Rgb[] = [
  [0, 0, 0],
  [205, 0, 0],
  [0, 205, 0],
  [205, 205, 0],
  [0, 0, 238],
  [205, 0, 205],
  [0, 205, 205],
  [229, 229, 229],
  [127, 127, 127],
  [255, 0, 0],
  [0, 255, 0],
  [255, 255, 0],
  [92, 92, 255],
  [255, 0, 255],
  [0, 255, 255],
  [255, 255, 255],
]
const BLACK = 0
const WHITES = [7, 15]

interface Colour {
  /** As it is written: `31`, `38;5;208`. */
  code: string
  rgb: Rgb
  /** Whether it is that of most terminals' ground, of the dark ones or of the light ones. */
  isGround: boolean
}

/**
 * The colours of a text of others, for a terminal: without those that hide it. That is what conceals, a text in the
 * colour of its ground, and black or white alone, since nobody knows the ground of the terminal. Such text has the
 * default colours.
 */
export class Colours {
  private text: Colour | undefined
  private ground: Colour | undefined
  private isOverruled = false

  /** What to write in place of a sequence that sets colours. */
  next(sequence: string): string {
    const codes = codesOf(sequence)
    const others = codes.filter((code) => !this.takes(code) && code !== CONCEAL && isKnown(code))
    const was = this.isOverruled
    this.isOverruled = hides(this.text, this.ground)
    if (this.isOverruled) return written([...others, ...NO_COLOURS])
    if (was) return written([...others, this.text?.code ?? '39', this.ground?.code ?? '49'])
    const shown = codes.filter((code) => code !== CONCEAL && isKnown(code))
    return shown.length === codes.length ? sequence : written(shown)
  }

  /** Whether the code sets a colour that is known. */
  private takes(code: string): boolean {
    const number = Number(code.split(';')[0])
    if (number === 0) this.text = this.ground = undefined
    else if (number === 39) this.text = undefined
    else if (number === 49) this.ground = undefined
    else {
      const colour = colourOf(code, number)
      if (!colour) return false
      if (isOfText(number)) this.text = colour
      else this.ground = colour
    }
    return number !== 0
  }
}

function written(codes: readonly string[]): string {
  return codes.length > 0 ? `\u001b[${codes.join(';')}m` : ''
}

/** A colour by its number is one code: `38;5;n`, `38;2;r;g;b`. What is left out counts as 0. */
function codesOf(sequence: string): string[] {
  const numbers = sequence.slice(2, -1).split(';').map(Number)
  const codes: string[] = []
  for (let at = 0; at < numbers.length;) {
    const isLong = [38, 48, 58].includes(numbers[at]!)
    const length = !isLong ? 1 : numbers[at + 1] === 5 ? 3 : numbers[at + 1] === 2 ? 5 : 2
    codes.push(numbers.slice(at, at + length).join(';'))
    at += length
  }
  return codes
}

/** Terminals differ in what they make of others, such as colours beyond the last. */
function isKnown(code: string): boolean {
  const [number, ...more] = code.split(';').map(Number)
  if (number! > LAST_CODE) return false
  if (number === 58 && more.length > 0) return isWhole(more)
  return ![38, 48, 58].includes(number!) || colourOf(code, number!) !== undefined
}

function isWhole([kind, ...values]: readonly number[]): boolean {
  return values.length === (kind === 5 ? 1 : kind === 2 ? 3 : NaN) && values.every((value) => value <= 255)
}

const isOfText = (number: number) => number === 38 || (number >= 30 && number < 38) || (number >= 90 && number < 98)

function colourOf(code: string, number: number): Colour | undefined {
  const [, ...more] = code.split(';').map(Number)
  if (number === 38 || number === 48) {
    if (!isWhole(more)) return undefined
    const [kind, ...values] = more
    return kind === 5 ? numbered(code, values[0]!) : exact(code, values as unknown as Rgb)
  }
  const first = [30, 40, 90, 100].find((each) => number >= each && number < each + 8)
  return first === undefined ? undefined : numbered(code, number - first + (first >= 90 ? 8 : 0))
}

/** Of the 256: 16 of the theme, a cube of 6 × 6 × 6, and 24 greys. */
function numbered(code: string, n: number): Colour {
  if (n < 16) return { code, rgb: BASE[n]!, isGround: n === BLACK || WHITES.includes(n) }
  if (n >= 232) return exact(code, [8 + (n - 232) * 10, 8 + (n - 232) * 10, 8 + (n - 232) * 10])
  const level = (step: number) => (step === 0 ? 0 : 55 + step * 40)
  const cube = n - 16
  return exact(code, [level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)])
}

function exact(code: string, rgb: Rgb): Colour {
  return { code, rgb, isGround: isAlike(rgb, BASE[BLACK]!) || WHITES.some((white) => isAlike(rgb, BASE[white]!)) }
}

function hides(text: Colour | undefined, ground: Colour | undefined): boolean {
  if (text && ground) return isAlike(text.rgb, ground.rgb)
  return (text ?? ground)?.isGround === true
}

function isAlike(one: Rgb, other: Rgb): boolean {
  const [dark, light] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (light! + 0.05) / (dark! + 0.05) < LEAST_CONTRAST
}

function luminance(rgb: Rgb): number {
  const [red, green, blue] = rgb.map((value) => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}
