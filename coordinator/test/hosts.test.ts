import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../config.ts'
import { createHosts } from '../hosts.ts'

const settings = (env: Record<string, string>) => readConfig({ WINDLASS_DATABASE_URL: 'postgres://any', ...env })
const hostsOf = (env: Record<string, string>) => createHosts(settings(env))

test('where it listens for all, numbers are taken for names, but not for the origin of a page', () => {
  for (const listening of ['0.0.0.0', '::']) {
    const hosts = hostsOf({ WINDLASS_HOST: listening })
    for (const host of ['192.168.1.5:8787', '[fe80::1]', 'localhost']) assert.ok(hosts.isOurs(host), host)
    for (const host of ['evil.example', '192.168.1.5.evil.example', '', undefined]) assert.ok(!hosts.isOurs(host), host)
    assert.ok(!hosts.mayCall('http://192.168.1.5'))
  }
})

test('where it listens on one address, other numbers are foreign', () => {
  const hosts = hostsOf({ WINDLASS_HOST: '10.0.0.7' })
  assert.ok(hosts.isOurs('10.0.0.7:8787') && hosts.mayCall('http://10.0.0.7:8787'))
  assert.ok(!hosts.isOurs('10.0.0.8'))
})

test('the public address is one of ours, as a host and as an origin', () => {
  const hosts = hostsOf({ WINDLASS_BASE_URL: 'https://windlass.example.com/' })
  assert.ok(hosts.isOurs('windlass.example.com') && hosts.mayCall('https://windlass.example.com'))
  assert.ok(!hosts.isOurs('example.com') && !hosts.mayCall('https://example.com'))
})

test('settings that are no addresses, hosts or origins are refused by name', () => {
  assert.equal(settings({ WINDLASS_BASE_URL: 'https://a.example:8443/' }).baseUrl, 'https://a.example:8443')
  assert.equal(settings({ WINDLASS_BASE_URL: 'https://a.example/under/here/' }).baseUrl, 'https://a.example/under/here')
  const wrong = {
    WINDLASS_BASE_URL: [
      'windlass.example.com',
      'ftp://a.example',
      'https://u:p@a.example',
      'https://a.example/?a=b',
      'https://a.example/a/../b',
      'https://a.example//',
      'https://a.example/$(id)',
    ],
    WINDLASS_MCP_HOSTS: ['a.example:80', 'https://a.example', 'a.example,'],
    WINDLASS_MCP_ORIGINS: ['a.example', 'https://a.example/', 'null', '*'],
  }
  for (const [name, values] of Object.entries(wrong))
    for (const value of values) assert.throws(() => settings({ [name]: value }), new RegExp(name), value)
})
