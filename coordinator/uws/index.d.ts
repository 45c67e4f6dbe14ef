export * from 'uws-pack'
