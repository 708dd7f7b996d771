-- Make the coming days' partitions before anything needs them.
select byrote_make_partitions(%(days)s) as made;
