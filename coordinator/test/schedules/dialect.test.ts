// Which patterns and zones are taken, and what is said of the others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fault } from '@windlass/shared/errors.ts'
import { checkedCron } from '../../schedules/rules/cron.ts'
import { describe } from '../../schedules/rules/description.ts'
import { checkedZone } from '../../schedules/rules/zones.ts'

const NOW = Date.UTC(2026, 10, 24)

const faultOf = (act: () => unknown): Fault => {
  try {
    act()
  } catch (error) {
    return error as Fault
  }
  throw new Error('it was taken')
}

test('patterns of five fields with names, lists, ranges, steps, L and # are taken', () => {
  const taken = [
    '0 9 * * 1-5',
    '*/15 0-6/2 1,15 JAN-mar Mon,wed-FRI',
    '0 0 L * *',
    '0 0 1,L * *',
    '0 0 ? * 5L',
    '0 0 * * 5#3',
    '0 0 * * FRI-SUN,MON',
    '0 0 * * 0,7',
    '5-59/15 * * * *',
    '0 0 29 2 *',
  ]
  for (const cron of taken) assert.equal(checkedCron(cron, NOW), cron)
  assert.equal(checkedCron('  0   9 * *\t1-5 ', NOW), '0 9 * * 1-5')
})

test('what is not taken is told with the field as written and the form that works', () => {
  const refused: [given: string, value: string, use: string | undefined][] = [
    ['@daily', '@daily', '0 0 * * *'],
    ['@reboot', '@reboot', undefined],
    ['0 0 * * FRI-MON', 'FRI-MON', 'FRI-SUN,MON'],
    ['0 0 * * SAT-TUE', 'SAT-TUE', 'SAT-SUN,MON-TUE'],
    ['0 0 * * 6-0', '6-0', '6-7'],
    ['0 22-2 * * *', '22-2', '22-23,0-2'],
    ['0 0 * DEC-FEB *', 'DEC-FEB', 'DEC,JAN-FEB'],
    ['5/15 * * * *', '5/15', '5-59/15'],
    ['0 0 15W * *', '15W', '15'],
    ['0 9 * * +MON', '+MON', 'MON'],
    ['0 9 * * MON#L', 'MON#L', '1L'],
    ['0 9 * * SUNDAY', 'SUNDAY', 'SUN'],
    ['60 * * * *', '60', undefined],
    ['0 0 * 13 *', '13', undefined],
    ['? * * * *', '?', undefined],
    ['*/0 * * * *', '*/0', undefined],
    ['0 0 31 2 *', '0 0 31 2 *', undefined],
    ['0 0 9 * * *', '0 0 9 * * *', undefined],
  ]
  for (const [given, value, use] of refused) {
    const { code, detail, message } = faultOf(() => checkedCron(given, NOW))
    assert.deepEqual(
      [code, detail?.path, detail?.['value'], detail?.['use']],
      ['VALIDATION_FAILED', 'cron', value, use],
    )
    if (use !== undefined) {
      assert.ok(message.includes(`write \`${use}\``), message)
      assert.ok(checkedCron(given.replace(value, use), NOW))
    }
  }
})

test('a zone is spelled as IANA does, and stays the alias that was given', () => {
  const spelled = {
    'europe/kyiv': 'Europe/Kyiv',
    'Europe/Kiev': 'Europe/Kiev',
    'ASIA/KOLKATA': 'Asia/Kolkata',
    utc: 'UTC',
  }
  for (const [given, zone] of Object.entries(spelled)) assert.equal(checkedZone(given), zone)
})

test('offsets, padded names and unknown zones are refused with the nearest name', () => {
  const nearest = { 'Europe/Zurch': 'Europe/Zurich', zurich: 'Europe/Zurich', 'New York': 'America/New_York' }
  const near = { ...nearest, ' UTC': 'UTC', '': 'UTC', '+05:30': 'UTC', 'UTC+2': 'UTC', 'Mars/Olympus': undefined }
  for (const [given, zone] of Object.entries(near)) {
    const { detail } = faultOf(() => checkedZone(given))
    assert.deepEqual([detail?.path, detail?.['nearest']], ['timezone', zone], given)
  }
})

test('the words say "or" where either day will do', () => {
  const say = (cron: string) => describe({ kind: 'cron', cron, timezone: 'UTC' })
  assert.equal(say('0 0 13 * 5'), 'At 00:00, on day 13 of the month or on Friday (UTC)')
  assert.equal(say('0 0 13 2 5'), 'At 00:00, on day 13 of the month or on Friday, only in February (UTC)')
  assert.equal(say('0 9 ? * 1-5'), 'At 09:00, Monday through Friday (UTC)')
  assert.equal(describe({ kind: 'rate', rateMs: 21_600_000, anchorAt: 0 }), 'Every 6 hours')
  assert.equal(describe({ kind: 'rate', rateMs: 86_400_000, anchorAt: 0 }), 'Every day')
  assert.equal(describe({ kind: 'at', at: 1_801_386_000_000 }), 'Once, at 2027-01-31T09:00:00.000Z')
})
