-- Whether this session may write: false on a standby and where transactions are read-only.
select not pg_is_in_recovery() and not current_setting('transaction_read_only')::boolean as writable;
