-- Create the partitions of the coming days in advance.
select byrote_make_partitions(%(days)s) as made;
