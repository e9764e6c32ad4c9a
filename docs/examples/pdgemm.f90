! C = A B on block-cyclic matrices by tessera_pdgemm, whose arguments are pdgemm's, and the difference from pdgemm:
!   mpif90 pdgemm.f90 -ltessera -lscalapack-openmpi && mpirun -n 4 ./a.out
program example
  use mpi
  implicit none
  integer, parameter :: m = 300, n = 200, k = 250, block = 32
  integer :: granted, error, context, rows, cols, row, col, info, seed(64)
  integer :: desc_a(9), desc_b(9), desc_c(9)
  integer, external :: numroc
  double precision, allocatable :: a(:, :), b(:, :), ours(:, :), theirs(:, :)
  double precision :: difference, largest

  call mpi_init_thread(MPI_THREAD_MULTIPLE, granted, error)
  call mpi_comm_size(MPI_COMM_WORLD, cols, error)
  rows = merge(2, 1, mod(cols, 2) == 0)
  cols = cols / rows
  call blacs_get(-1, 0, context)
  call blacs_gridinit(context, 'Row', rows, cols)
  call blacs_gridinfo(context, rows, cols, row, col)

  seed = 100 * row + col
  call random_seed(put=seed)
  call make(a, desc_a, m, k)
  call make(b, desc_b, k, n)
  call make(ours, desc_c, m, n)
  theirs = ours
  call tessera_pdgemm('N', 'N', m, n, k, 2d0, a, 1, 1, desc_a, b, 1, 1, desc_b, -1d0, ours, 1, 1, desc_c)
  call pdgemm('N', 'N', m, n, k, 2d0, a, 1, 1, desc_a, b, 1, 1, desc_b, -1d0, theirs, 1, 1, desc_c)

  difference = maxval(abs(ours - theirs))
  call mpi_allreduce(difference, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
  if (row == 0 .and. col == 0) print '(a, es9.2)', 'largest difference from pdgemm:', largest
  call blacs_gridexit(context)
  call mpi_finalize(error)

contains
  ! This rank's part of a random matrix, and its descriptor.
  subroutine make(x, desc, x_rows, x_cols)
    double precision, allocatable, intent(out) :: x(:, :)
    integer, intent(out) :: desc(9)
    integer, intent(in) :: x_rows, x_cols
    integer :: local_rows
    local_rows = max(1, numroc(x_rows, block, row, 0, rows))
    allocate (x(local_rows, max(1, numroc(x_cols, block, col, 0, cols))))
    call random_number(x)
    call descinit(desc, x_rows, x_cols, block, block, 0, 0, context, local_rows, info)
  end subroutine
end program
