target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i32 @masked_tail(ptr noalias %A, ptr noalias %B, i64 %n, i32 %num_threads) #0 {
entry:
  %.1 = add i64 %n, 7
  %.2 = ashr i64 %.1, 3
  br label %for.3.entry
for.3.entry:
  br label %for.3.head
for.3.head:
  %i = phi i64 [ 0, %for.3.entry ], [ %i.next, %for.3.latch ]
  %i.more = icmp slt i64 %i, %.2
  br i1 %i.more, label %for.3.body, label %for.3.end
for.3.body:
  %.4 = mul i64 %i, 8
  %.5.lane = insertelement <8 x i64> poison, i64 %.4, i64 0
  %.5 = shufflevector <8 x i64> %.5.lane, <8 x i64> poison, <8 x i32> zeroinitializer
  %.6 = add <8 x i64> %.5, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %.7.lane = insertelement <8 x i64> poison, i64 %n, i64 0
  %.7 = shufflevector <8 x i64> %.7.lane, <8 x i64> poison, <8 x i32> zeroinitializer
  %.8 = icmp slt <8 x i64> %.6, %.7
  %.9 = mul i64 %i, 8
  %.10.at = getelementptr float, ptr %A, i64 %.9
  %.10 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %.10.at, i32 4, <8 x i1> %.8, <8 x float> zeroinitializer)
  %.11 = call <8 x float> @llvm.sqrt.v8f32(<8 x float> %.10)
  %.12 = mul i64 %i, 8
  %.13.at = getelementptr float, ptr %B, i64 %.12
  call void @llvm.masked.store.v8f32.p0(<8 x float> %.11, ptr %.13.at, i32 4, <8 x i1> %.8)
  br label %for.3.latch
for.3.latch:
  %i.next = add i64 %i, 1
  br label %for.3.head
for.3.end:
  ret i32 0
}

declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)
declare <8 x float> @llvm.sqrt.v8f32(<8 x float>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)

attributes #0 = { nounwind "no-builtin-memcpy" }
attributes #1 = { nounwind readnone willreturn }
