// Nothing to call: linking is the purpose.
